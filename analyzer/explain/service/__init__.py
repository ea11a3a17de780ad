"""After the device: when the server emitted each token and when the client had it, on the capture's clock."""
