"""Files of other evaluation projects: FastChat, AlpacaEval, Arena-Hard and the Vicuna announcement, read and written.

Readers take one row at a time and say what is wrong with it; nothing here knows the database.
"""
