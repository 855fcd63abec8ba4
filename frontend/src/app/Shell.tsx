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
  IconLogout,
  IconMoon,
  IconPlayerPlay,
  IconRoute,
  IconSearch,
  IconStack2,
  IconSun,
  IconUser,
} from "@tabler/icons-react";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { createLink, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { forwardRef, useEffect } from "react";
import { api } from "../api/client";
import { useConnection, useLive } from "../api/live";
import { sessionQuery, useMay } from "../api/session";
import { Empty } from "../shared/Feedback";
import { useProject } from "../shared/links";
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
  { to: "/p/$project/compare", label: "Compare", icon: IconArrowsDiff },
  { to: "/p/$project/datasets", label: "Datasets", icon: IconDatabase },
  { to: "/p/$project/models", label: "Models", icon: IconCube },
] as const;

export function Shell() {
  const project = useProject();
  const reads = useMay(project, "read");
  const runs = useMay(project, "run");
  useLive(project, reads);
  const [opened, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(close, [path, close]);

  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={{ base: "md", lg: "xl" }}
    >
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <img src="/icon.svg" width={28} height={28} alt="" />
            <Text fw={700} visibleFrom="xs">
              Steerboard
            </Text>
            <ProjectChoice project={project} />
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Connection />
            <PaletteButton />
            <SchemeButton />
            <Person />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" aria-label="Places">
        <ScrollArea>
          {PLACES.filter(({ to }) => reads && (runs || to !== "/p/$project/launch")).map(
            ({ to, label, icon: Icon }) => (
              <Item
                key={to}
                to={to}
                params={{ project }}
                activeOptions={{ exact: to === "/p/$project", includeSearch: false }}
                label={label}
                leftSection={<Icon size={18} stroke={1.7} />}
                style={{ borderRadius: 8 }}
              />
            ),
          )}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main style={{ maxWidth: 1680 }}>
        {reads ? (
          <Outlet />
        ) : (
          <Empty title="Nothing waits for you">
            Your role in {project} is to rank answers. What there is to rank will show up here.
          </Empty>
        )}
      </AppShell.Main>
      {reads && <Palette project={project} places={PLACES} />}
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
    <Tooltip label="The live stream broke. This page shows what it knew and catches up by itself.">
      <Badge color="orange" role="status">
        reconnecting
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
  const { data: session } = useSuspenseQuery(sessionQuery);
  const client = useQueryClient();
  const navigate = useNavigate();
  const signOut = async () => {
    await api.DELETE("/api/v1/session");
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
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
