/** The frames of the user's code in the stack of an error: most frames are of this package, and they say nothing about the defect. */
import { join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The package: `bin` has hooks that are in the stacks of modules, too. */
const OWN_FOLDER = join(import.meta.dirname, "../..") + sep;
const OWN_ADDRESS = pathToFileURL(OWN_FOLDER).href;
/** `at name (place)` or `at place`; agents may have written anything into a stack. */
const PLACE = /^\s+at (?:async )?(?:.*\()?((?:file:|node:|\/)\S*?)\)?$/;

/**
 * Consecutive frames of this package and of Node become one line with their number. A stack without any other frame stays: the defect is here. A
 * cause, whose frames follow its own message, is shortened in the same way.
 */
export function withoutOwnFrames(stack: string): string {
  const lines = stack.split("\n");
  if (!lines.some((line) => isFrame(line) && !isOwn(line))) return stack;
  const kept: string[] = [];
  let hidden = 0;
  const flush = () => {
    if (hidden > 0) kept.push(`    … ${hidden} ${hidden === 1 ? "frame" : "frames"} of Signalbox`);
    hidden = 0;
  };
  for (const line of lines) {
    if (isFrame(line) && isOwn(line)) {
      hidden += 1;
      continue;
    }
    flush();
    kept.push(line);
  }
  flush();
  return kept.join("\n");
}

/** `/home/ann/shop/agents.ts:12:9`: where the user's code was, not that of a package; undefined if the stack has no such frame. */
export function userPlace(stack: string): string | undefined {
  const frame = stack
    .split("\n")
    .find((line) => isFrame(line) && !isOwn(line) && !line.includes(`${sep}node_modules${sep}`));
  const [, place] = PLACE.exec(frame ?? "") ?? [];
  return place?.startsWith("file:") === true ? pathOf(place) : place;
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch {
    return url;
  }
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line);
}

/** Frames without a place, such as `at async Promise.all (index 0)`, are taken for Node's. */
function isOwn(line: string): boolean {
  const [, place] = PLACE.exec(line) ?? [];
  if (place === undefined) return true;
  return place.startsWith("node:") || place.startsWith(OWN_ADDRESS) || place.startsWith(OWN_FOLDER);
}
