import { CopyButton } from "../../components/copy-button.tsx";

/** Shows a new token. The token is kept in the component's props only and never stored. */
export function NewTokenNotice({ token }: { readonly token: string }) {
  return (
    <div className="notice notice-good" role="status">
      <p>
        <strong>Copy the token now. You will not be able to see it again.</strong>
      </p>
      <p className="secret">
        <code data-testid="new-token">{token}</code>
        <CopyButton text={token} />
      </p>
    </div>
  );
}
