"""The store on real SQLite files: one process, two, killed ones, and files that resist."""
