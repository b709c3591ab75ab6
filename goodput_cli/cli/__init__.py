"""What a person types: options in, the library called, the answer handed to a renderer."""
