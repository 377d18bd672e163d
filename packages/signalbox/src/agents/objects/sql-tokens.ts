/** Strings, quoted names and comments, in which nothing is a name or a parameter; then ends of statements, and parameters. */
export const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|;|\?\d*|[:@$][A-Za-z_]\w*/g;
