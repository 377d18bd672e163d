import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import "./page.css";
import { RepositoryPanel } from "./repository-panel.tsx";

const SAMPLES = ["acme/widgets", "acme/rockets", "octo/hello-world"];

function Page() {
  const [repositories, setRepositories] = useState(SAMPLES);
  const follow = (form: FormData) => {
    const added = form.get("repository");
    if (typeof added === "string" && !repositories.includes(added)) setRepositories([added, ...repositories]);
  };
  return (
    <main>
      <header>
        <h1>Repositories, live</h1>
        <form action={follow}>
          <input
            name="repository"
            aria-label="Follow"
            placeholder="Follow owner/name"
            pattern="[^\s\/]+\/[^\s\/]+"
            required
          />
          <button>Add</button>
        </form>
      </header>
      <div className="panels">
        {repositories.map((repository) => (
          <RepositoryPanel key={repository} repository={repository} />
        ))}
      </div>
    </main>
  );
}

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Page />
    </StrictMode>,
  );
}
