/** What is wrong with an archive. The message is one line with the file. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}
