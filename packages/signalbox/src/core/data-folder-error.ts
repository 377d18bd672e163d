/** The data folder or the database cannot be used. The message is one line for the operator. */
export class DataFolderError extends Error {
  override readonly name = "DataFolderError";
}
