"""What a capture can and cannot answer, and the capture that would."""
