"""Every command that the root README shows must exist: an executable script, a sub-command in the CLI's table."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def shown_commands(text):
    """Lines of fenced sh/bash blocks, without prompts and comments."""
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            line = line.removeprefix("$ ").split("#")[0].strip()
            if line:
                yield line


def complaint(command, cli_commands):
    words = [word for word in command.split() if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    if not words:
        return None
    if words[0].startswith(("./", "scripts/")) and not os.access(ROOT / words[0], os.X_OK):
        return f"{words[0]} is no executable file"
    if words[0] == "stiction" and (len(words) < 2 or words[1] not in cli_commands):
        return f"stiction has no such command, it has: {', '.join(sorted(cli_commands))}"
    return None


def main():
    table = re.search(
        r"^COMMANDS = \{(.*?)^\}", (ROOT / "python/stiction/cli.py").read_text(), re.DOTALL | re.MULTILINE
    )
    cli_commands = set(re.findall(r'^\s*"([\w-]+)":', table.group(1), re.MULTILINE))
    commands = list(shown_commands((ROOT / "README.md").read_text()))
    complaints = [f"README.md: `{c}`: {why}" for c in commands if (why := complaint(c, cli_commands))]
    if not commands:
        complaints.append("README.md shows no commands")
    print("\n".join(complaints) or f"{len(commands)} commands")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
