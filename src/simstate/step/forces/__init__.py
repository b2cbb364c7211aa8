"""Force models: gravity, thrust, drag and moving frames."""
