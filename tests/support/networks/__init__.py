"""ONNX models: whole networks and single nodes."""
