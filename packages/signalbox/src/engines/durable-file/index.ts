/** Files that are written whole, or not at all, and survive a power failure. See README.md. */
export { replaceFile } from "./replace-file.ts";
export { syncFolder } from "./sync-folder.ts";
export { writeWhole } from "./write-whole.ts";
