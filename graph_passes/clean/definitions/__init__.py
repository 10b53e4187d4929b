"""Old, rare and composite operators become those that ONNX defines them by."""
