/** The columns that text takes on a terminal: East Asian and emoji characters take two, combining and invisible ones none. */
const ASCII = /^[\x20-\x7e]*$/;
/** U+FE0F turns the preceding character into an emoji; U+200D joins two into one. Both are handled by the segmenter's clusters. */
const INVISIBLE = /^[\p{M}\p{Cf}\p{Cc}]+$/u;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\p{Emoji}\ufe0f/u;

let segmenter: Intl.Segmenter | undefined;

export function cellWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const cluster of clustersOf(text)) width += clusterWidth(cluster);
  return width;
}

/** The text, shortened with `…` to at most `width` columns. */
export function fitCell(text: string, width: number): string {
  if (cellWidth(text) <= width) return text;
  let kept = "";
  let left = width - 1;
  for (const cluster of clustersOf(text)) {
    left -= clusterWidth(cluster);
    if (left < 0) break;
    kept += cluster;
  }
  return `${kept}…`;
}

/** Pads with spaces to `width` columns. */
export function padCell(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - cellWidth(text)));
}

function* clustersOf(text: string): Generator<string> {
  segmenter ??= new Intl.Segmenter();
  for (const { segment } of segmenter.segment(text)) yield segment;
}

function clusterWidth(cluster: string): number {
  if (INVISIBLE.test(cluster)) return 0;
  return WIDE.test(cluster) ? 2 : 1;
}
