/** One file with many files in it, each with its SHA-256: the format of backups. See README.md. */
export { ArchiveError } from "./archive-error.ts";
export { ArchiveFile } from "./archive-file.ts";
export { type ArchivePart, bytesPart, temporaryFilePart } from "./archive-part.ts";
export { writeArchive } from "./write-archive.ts";
