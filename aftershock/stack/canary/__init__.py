"""The canary: a tiny model that ships with aftershock, how it is made and what it was taught."""
