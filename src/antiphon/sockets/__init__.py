"""Real processes, real sockets: the cores under asyncio."""
