import { type FormEvent, useState } from "react";
import { Button } from "../components/button.tsx";
import { ErrorNotice } from "../components/error-notice.tsx";
import { Field } from "../components/field.tsx";
import { useAction } from "../http/use-action.ts";
import { usePageLocation } from "../routing/location.ts";
import { Logo } from "../shell/logo.tsx";
import { logIn, type Session } from "./session.ts";

export function LoginPage({ onLogin }: { readonly onLogin: (session: Session) => void }) {
  const [token, setToken] = useState("");
  const { query } = usePageLocation();
  const login = useAction(async () => onLogin(await logIn(token)));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void login.run();
  };
  return (
    <main className="login">
      <div className="login-box">
        <Logo />
        <h1>Log in</h1>
        {query.has("expired") && (
          <p className="notice notice-warn" role="status">
            This login link has expired or has already been used. A login link works once and expires after
            ten minutes.
          </p>
        )}
        <form onSubmit={submit} className="stack">
          <Field
            label="Token"
            hint="The root token or a token of your account. The browser stores a session cookie, not the token."
          >
            <input
              type="password"
              name="token"
              autoComplete="off"
              spellCheck={false}
              required
              autoFocus
              value={token}
              onChange={(event) => setToken(event.target.value)}
              placeholder="sbx_…"
            />
          </Field>
          {login.error !== null && <ErrorNotice error={login.error} />}
          <Button kind="primary" type="submit" isBusy={login.isBusy}>
            Log in
          </Button>
        </form>
        <p className="muted small">
          To log in without a token, run <code>npx signalbox login-link</code> on the server and open the link
          it prints. The root token is in the file <code>root-token</code> in the data directory.
        </p>
      </div>
    </main>
  );
}
