"""Old and composite forms become plain ones, and what does nothing goes."""
