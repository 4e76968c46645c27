"""What whoever operates the server is told: log lines and metrics."""
