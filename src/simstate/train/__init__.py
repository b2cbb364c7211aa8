"""Training with rsl-rl: runs that resume, evaluation, export to ONNX, video."""
