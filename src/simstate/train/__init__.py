"""Training with rsl-rl's PPO: runs that resume, evaluation, export to ONNX, video."""
