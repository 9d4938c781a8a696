"""The Spark session: Java, workers, one job with progress."""
