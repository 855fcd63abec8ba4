"""Base classes for environment files that use packages of others."""
