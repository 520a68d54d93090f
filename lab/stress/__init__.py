"""Kills, faulty disks, load and hostile clients."""
