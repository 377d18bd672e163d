/**
 * The scripts of `signalbox completion`. Each asks the program that is being completed for candidates, so a script need not change with the commands.
 * Candidates contain names that others chose: every script inserts them quoted.
 */
const BASH = String.raw`# Completion of signalbox for bash. Add to ~/.bashrc: source <(signalbox completion bash)
_signalbox() {
  local line value cur=${"$"}{COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  # Inside quotes readline quotes by itself, and the candidates are quoted already.
  [[ $cur == [\"\']* ]] && return
  [[ $cur == = || $cur == : ]] && cur=
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$cur")
    else
      printf -v value '%q' "${"$"}{line%%$'\t'*}"
      COMPREPLY+=("$value")
    fi
  done < <("${"$"}{COMP_WORDS[0]/#\~/$HOME}" __complete --shell bash -- "${"$"}{COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _signalbox signalbox
`;

const ZSH = String.raw`#compdef signalbox
# Completion of signalbox for zsh. Add to ~/.zshrc: source <(signalbox completion zsh)
_signalbox() {
  local line value about
  local -a candidates
  local -i hasFiles=0
  for line in "${"$"}{(@f)$("${"$"}{(Q)words[1]}" __complete --shell zsh -- "${"$"}{(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then
      hasFiles=1
    elif [[ -n $line ]]; then
      value=${"$"}{line%%$'\t'*}
      about=${"$"}{line#*$'\t'}
      candidates+=("${"$"}{${"$"}{value//\\/\\\\}//:/\\:}${"$"}{about:+:$about}")
    fi
  done
  (( $#candidates )) && _describe -V signalbox candidates
  (( hasFiles )) && _files
  return 0
}
if [[ $funcstack[1] == _signalbox ]]; then
  _signalbox "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _signalbox signalbox
fi
`;

const FISH = String.raw`# Completion of signalbox for fish: signalbox completion fish > ~/.config/fish/completions/signalbox.fish
function __signalbox_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in ($program __complete --shell fish -- $words "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            echo -- "$line"
        end
    end
end
complete -c signalbox -e
complete -c signalbox -f -k -a '(__signalbox_complete)'
`;

export const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
