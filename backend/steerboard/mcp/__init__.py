"""The platform for agents: an MCP server that is a client of the API, and has the rights of its caller's token."""
