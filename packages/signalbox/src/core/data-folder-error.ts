/** The data folder or database cannot be used as it is; the message is one line for the operator. */
export class DataFolderError extends Error {
  override readonly name = "DataFolderError";
}
