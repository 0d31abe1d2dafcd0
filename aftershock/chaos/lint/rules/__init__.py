"""The rules, by what they look at. Importing a module registers its rules; `linter` imports all of them."""
