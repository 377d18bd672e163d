/**
 * The program-process engine: a process for code that is not trusted, with one socket to the process that started it. README.md states what it promises, and what not.
 */
export { confineProcess } from "./confine-process.ts";
export { askParent, tellParent } from "./parent-questions.ts";
export { openParentSocket } from "./parent-socket.ts";
export { type ProcessEnd, ProgramProcess } from "./program-process.ts";
