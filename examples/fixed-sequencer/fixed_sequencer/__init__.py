"""Total order by a fixed sequencer: one member numbers the messages of all."""
