"""Pages for people without an account, behind links that expire and can be revoked."""
