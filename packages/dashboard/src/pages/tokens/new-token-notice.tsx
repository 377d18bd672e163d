import { CopyButton } from "../../components/copy-button.tsx";

/** A new token's text: lives in this component only and is gone with it. */
export function NewTokenNotice({ token }: { readonly token: string }) {
  return (
    <div className="notice notice-good" role="status">
      <p>
        <strong>Copy it now: it is not shown again.</strong> Only its hash is stored.
      </p>
      <p className="secret">
        <code data-testid="new-token">{token}</code>
        <CopyButton text={token} />
      </p>
    </div>
  );
}
