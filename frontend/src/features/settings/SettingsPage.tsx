import { Tabs } from "@mantine/core";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useMay } from "../../api/accounts/session";
import { useProject } from "../../shared/links";
import { Page } from "../../shared/Page";

const TABS = [
  { name: "account", label: "Account", needs: null },
  { name: "members", label: "Members", needs: "read" },
  { name: "tokens", label: "Tokens", needs: "admin" },
  { name: "audit", label: "Audit log", needs: "admin" },
  { name: "notices", label: "Notices", needs: "admin" },
  { name: "trackers", label: "Trackers", needs: "admin" },
  { name: "project", label: "Project", needs: null },
] as const;

/** The tabs, each with an address of its own. */
export function SettingsPage() {
  const project = useProject();
  const navigate = useNavigate();
  const owns = useMay(project, "admin");
  const reads = useMay(project, "read");
  const open = useRouterState({ select: (state) => state.location.pathname.split("/").pop() ?? "" });
  const shown = TABS.filter(
    ({ name, needs }) => needs === null || (needs === "read" ? reads : owns) || name === open,
  );
  const list = useRef<HTMLDivElement>(null);
  // On a phone the tabs are wider than the page.
  useEffect(() => {
    const tab = list.current?.querySelector("[aria-selected=true]");
    tab?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [open]);
  const name = TABS.find((one) => one.name === open)?.label;
  return (
    <Page title="Settings" tab={name && `${name} · Settings`}>
      <Tabs
        value={open}
        // With the keyboard the arrows only lead to a tab; loading each page on the way would be in the way.
        activateTabWithKeyboard={false}
        onChange={(name) =>
          name && void navigate({ href: `/p/${encodeURIComponent(project)}/settings/${name}` })
        }
      >
        <Tabs.List ref={list}>
          {shown.map(({ name, label }) => (
            <Tabs.Tab value={name} key={name}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {shown.map(({ name }) => (
          <Tabs.Panel value={name} key={name} pt="lg">
            {name === open && <Outlet />}
          </Tabs.Panel>
        ))}
      </Tabs>
    </Page>
  );
}
