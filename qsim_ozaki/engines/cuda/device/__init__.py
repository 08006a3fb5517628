"""One GPU: its launcher, states, kernel table, compiler and records in device memory."""
