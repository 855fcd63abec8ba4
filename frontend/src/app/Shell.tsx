import {
  ActionIcon,
  AppShell,
  Badge,
  Burger,
  Group,
  Kbd,
  Menu,
  NavLink,
  type NavLinkProps,
  ScrollArea,
  Select,
  Text,
  Tooltip,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
  VisuallyHidden,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { spotlight } from "@mantine/spotlight";
import {
  IconArrowsDiff,
  IconCube,
  IconDatabase,
  IconHome,
  IconListNumbers,
  IconLogout,
  IconMessages,
  IconMoon,
  IconPlayerPlay,
  IconPlugConnectedX,
  IconRoute,
  IconScale,
  IconSearch,
  IconSettings,
  IconStack2,
  IconSun,
  IconSwords,
  IconThumbUp,
  IconUser,
  IconUserCog,
} from "@tabler/icons-react";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { createLink, Navigate, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { forwardRef, useEffect } from "react";
import { useConnection, useLive } from "../api/live/live";
import { endSession, opens, sessionQuery, useMay } from "../api/accounts/session";
import { WaitingVotes } from "../features/arena/WaitingVotes";
import { NoticesBell } from "../features/notices/NoticesBell";
import { Empty } from "../shared/Feedback";
import { Page } from "../shared/Page";
import { Link, useProject } from "../shared/links";
import { Palette } from "./Palette";

const Item = createLink(
  forwardRef<HTMLAnchorElement, NavLinkProps>(function PlaceLink(properties, ref) {
    return <NavLink ref={ref} {...properties} />;
  }),
);

const PLACES = [
  { to: "/p/$project", label: "Home", icon: IconHome },
  { to: "/p/$project/launch", label: "Launch", icon: IconPlayerPlay },
  { to: "/p/$project/pipelines", label: "Pipelines", icon: IconRoute },
  { to: "/p/$project/runs", label: "Runs", icon: IconStack2 },
  { to: "/p/$project/queue", label: "Queue", icon: IconListNumbers },
  { to: "/p/$project/compare", label: "Compare", icon: IconArrowsDiff },
  { to: "/p/$project/playground", label: "Playground", icon: IconMessages },
  { to: "/p/$project/arena", label: "Arena", icon: IconSwords },
  { to: "/p/$project/evaluations", label: "Evaluations", icon: IconScale },
  { to: "/p/$project/datasets", label: "Datasets", icon: IconDatabase },
  { to: "/p/$project/models", label: "Models", icon: IconCube },
  { to: "/p/$project/rank", label: "Annotate", icon: IconThumbUp },
  { to: "/p/$project/settings", label: "Settings", icon: IconSettings },
] as const;

/** The scope a place needs besides reading. */
const NEEDS: Record<string, "run" | "rank"> = { "/p/$project/launch": "run", "/p/$project/rank": "rank" };

export function Shell() {
  const project = useProject();
  const { data: session } = useSuspenseQuery(sessionQuery);
  const mine = session.projects.map((one) => one.name);
  const reads = useMay(project, "read");
  const may = { run: useMay(project, "run"), rank: useMay(project, "rank") };
  const places = PLACES.filter(({ to }) => reads && (!NEEDS[to] || may[NEEDS[to]]));
  useLive(project, reads);
  const [opened, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(close, [path, close]);

  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !opened, desktop: !reads } }}
      padding={{ base: "md", lg: "xl" }}
    >
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            {reads && <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />}
            <img src="/icon.svg" width={28} height={28} alt="" />
            <Text fw={700} visibleFrom="xs">
              Steerboard
            </Text>
            <ProjectChoice project={project} />
          </Group>
          <Group gap="xs" wrap="nowrap">
            {may.rank && <WaitingVotes />}
            <Connection />
            {reads && <PaletteButton />}
            {reads && <NoticesBell />}
            <SchemeButton />
            <Person />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" aria-label="Places">
        <ScrollArea>
          {places.map(({ to, label, icon: Icon }) => (
            <Item
              key={to}
              to={to}
              params={{ project }}
              activeOptions={{ exact: to === "/p/$project", includeSearch: false }}
              label={label}
              leftSection={<Icon size={18} stroke={1.7} />}
              style={{ borderRadius: 8 }}
            />
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main style={{ maxWidth: 1680 }}>
        {!mine.includes(project) ? (
          <Page title="No such project">
            <Empty title={`No access to project ${project}`}>
              There is no project with this name, or you are not a member of it. Ask one of its owners.
              {mine.map((name) => (
                <div key={name}>
                  <Link to="/p/$project" params={{ project: name }}>
                    Go to {name}
                  </Link>
                </div>
              ))}
            </Empty>
          </Page>
        ) : opens(session, project, path) ? (
          <Outlet />
        ) : (
          <Navigate to="/p/$project/rank" params={{ project }} replace />
        )}
      </AppShell.Main>
      {reads && <Palette project={project} places={places} />}
    </AppShell>
  );
}

function ProjectChoice({ project }: { project: string }) {
  const { data: session } = useSuspenseQuery(sessionQuery);
  const navigate = useNavigate();
  const names = session.projects.map((one) => one.name);
  if (names.length < 2) return <Badge color="gray">{project}</Badge>;
  return (
    <Select
      aria-label="Project"
      size="xs"
      w={150}
      data={names}
      value={project}
      allowDeselect={false}
      onChange={(name) => name && void navigate({ to: "/p/$project", params: { project: name } })}
    />
  );
}

function Connection() {
  const state = useConnection();
  if (state === "live") return null;
  return (
    <Tooltip label="The live connection was lost. This page shows the last known state and catches up automatically.">
      <Badge
        color="orange"
        role="status"
        className="state-badge"
        leftSection={<IconPlugConnectedX size={14} />}
        style={{ flexShrink: 0 }}
      >
        <Text span inherit visibleFrom="xs">
          reconnecting
        </Text>
        <Text span inherit className="unseen" hiddenFrom="xs">
          reconnecting
        </Text>
      </Badge>
    </Tooltip>
  );
}

function PaletteButton() {
  return (
    <UnstyledButton onClick={spotlight.open}>
      <Group gap={6} wrap="nowrap" px={8} py={4}>
        <IconSearch size={16} />
        <VisuallyHidden>Go to a page, pipeline, model or dataset</VisuallyHidden>
        <Group gap={4} visibleFrom="md" wrap="nowrap">
          <Kbd size="xs">Ctrl</Kbd>
          <Kbd size="xs">K</Kbd>
        </Group>
      </Group>
    </UnstyledButton>
  );
}

function SchemeButton() {
  const scheme = useComputedColorScheme("light");
  const { setColorScheme } = useMantineColorScheme();
  const next = scheme === "dark" ? "light" : "dark";
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      onClick={() => setColorScheme(next)}
      aria-label={`Use ${next} colours`}
    >
      {scheme === "dark" ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  );
}

function Person() {
  const project = useProject();
  const { data: session } = useSuspenseQuery(sessionQuery);
  const client = useQueryClient();
  const navigate = useNavigate();
  const signOut = async () => {
    await endSession();
    client.clear();
    await navigate({ to: "/sign-in", search: {} });
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Signed in as ${session.user}`}>
          <IconUser size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{session.user}</Menu.Label>
        <Menu.Item
          leftSection={<IconUserCog size={16} />}
          onClick={() => void navigate({ to: "/p/$project/settings/account", params: { project } })}
        >
          Account
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
