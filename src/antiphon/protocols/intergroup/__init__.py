"""InterGroup (Berket00): requests that suppress one another, and a delivery service that each receiver chooses."""
