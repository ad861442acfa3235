"""`nearly completion bash|zsh`: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse

from nearly.cli.verbs import Commands

_BASH = """\
_nearly() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" verb="${{COMP_WORDS[2]}}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands} --version --help" -- "$word"))
    return
  fi
  case "$command $verb" in
{cases}
  esac
  if [ "${{word#-}}" = "$word" ]; then
    COMPREPLY+=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _nearly nearly
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "completion", help="a script that completes this command in bash or zsh", description=__doc__,
        epilog='example: eval "$(nearly completion bash)" in ~/.bashrc', formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("shell", choices=("bash", "zsh"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print((_ZSH if options.shell == "zsh" else "") + script(), end="")
    return 0


def script() -> str:
    """What bash needs to know of all commands, their verbs and options, taken from the parsers themselves."""
    from nearly.cli.main import COMMANDS, parser_for

    cases = []
    for name, command in _children(parser_for([])).items():
        verbs = _children(command)
        cases += [_case(f'"{name} {verb}"*', _options(parser)) for verb, parser in verbs.items()]
        cases.append(_case(f'"{name} "*', [*verbs, *_options(command)]))
    return _BASH.format(commands=" ".join(COMMANDS), cases="\n".join(cases))


def _case(pattern: str, words: list[str]) -> str:
    return f'    {pattern}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"));;'


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
