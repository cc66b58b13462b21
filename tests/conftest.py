"""How hypothesis searches: the same examples each time, unless asked to look further."""

from hypothesis import settings

# A failure that a change did not cause says nothing about the change. `--hypothesis-profile=search` looks at
# fresh examples; what it finds becomes an @example of the test.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("repeatable")
