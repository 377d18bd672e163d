/** The text-scan engine: many patterns over a text that arrives in pieces, and the strings of JSON. README.md states what it promises. */
export { Automaton } from "./automaton.ts";
export { SOFT_BREAK, toPlainText } from "./look-alikes.ts";
export {
  checkPattern,
  InvalidPatternError,
  PatternProgram,
  preparePattern,
  type ScanPattern,
} from "./pattern-program.ts";
export { type FoundText, type IdlePlace, type MatchCheck, TextScanner } from "./text-scanner.ts";
export {
  editJson,
  endOfString,
  type JsonLevel,
  type JsonText,
  MARKS,
  marksOf,
  pathOf,
  readJsonSlices,
  readJsonTexts,
} from "./json-texts.ts";
