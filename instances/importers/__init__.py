"""Importers: files of other programs as cwb instances, one module a program."""
