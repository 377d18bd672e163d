/** Strings, quoted names and comments, in which nothing is a name or a parameter; then ends of statements, and parameters. */
export const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|;|\?\d*|[:@$][A-Za-z_]\w*/g;

/** Replaces in the parts of a text that are neither strings nor quoted names nor comments. */
export function replaceOutsideOfTokens(text: string, replace: (part: string) => string): string {
  let result = "";
  let end = 0;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    result += replace(text.slice(end, index)) + token;
    end = index + token.length;
  }
  return result + replace(text.slice(end));
}
