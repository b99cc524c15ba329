"""The methods: one folder a family; :mod:`cwb.models.registry` knows them all."""
