"""A local Azure for scale sets: ARM, IMDS, a VNet of namespaces, and nodes that are real Linux systems."""
