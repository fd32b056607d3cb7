//! A service with a project of a known number of dashboards or insights, and the requests for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::prelude::{RngExt, SeedableRng, SliceRandom, StdRng};
use serde_json::json;

use crate::http::render;
use crate::load::run;
use crate::plan::{Group, Run, Span};
use crate::process::Memory;
use crate::sample;
use crate::service::{Place, Service, binary};
use crate::{Context, Result, Settings, fail, progress};

/// The default number of connections.
pub const CONNECTIONS: usize = 64;

/// The rows of a small file.
pub const FEW: u64 = 1_000;

/// The time limit for seeding. After it, the benchmark uses the rows created so far, and the next run continues.
const SEEDING_WITHIN: Duration = Duration::from_secs(180);

/// The number of different bodies, and of ids, that requests cycle through.
const VARIETY: usize = 8_192;
const IDS: usize = 32_768;

/// What the project of a site contains.
#[derive(Clone, Copy)]
pub enum Resource {
    Dashboards,
    Insights,
}

impl Resource {
    /// The name in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dashboards => "dashboards",
            Self::Insights => "insights",
        }
    }
}

/// A running service, its first key and its project.
pub struct Site {
    pub service: Service,
    pub key: String,
    /// The objects in the project when the site was opened.
    pub count: u64,
    pub resource: Resource,
    binary: PathBuf,
    place: Place,
    project: u64,
    ids: Vec<u64>,
}

impl Site {
    /// Creates a new file with [`FEW`] dashboards.
    pub fn few(settings: &Settings, name: &str) -> Result<Self> {
        Self::new(settings, name, Resource::Dashboards, FEW)
    }

    /// Does what [`few`](Self::few) does, with another binary of the service.
    pub fn few_of(settings: &Settings, name: &str, binary: &Path) -> Result<Self> {
        let folder = settings.folder.join(name);
        remove(&folder)?;
        Self::open(settings, file_in(&folder), (Resource::Dashboards, FEW), binary)
    }

    /// Creates a workspace with [`FEW`] dashboards in the shared database at `url`, in which there is none.
    pub fn shared(settings: &Settings, name: &str, url: &str) -> Result<Self> {
        let place = new_copy(settings, name, url)?;
        Self::open(settings, place, (Resource::Dashboards, FEW), &binary())
    }

    /// Starts another node on the shared database at `url`, and waits until it answers.
    pub fn another_node(&self, settings: &Settings, name: &str, url: &str) -> Result<Service> {
        Ok(self.timed_node(settings, name, url)?.0)
    }

    /// Starts another node without a copy. Returns it with the time to its first 200.
    pub fn timed_node(
        &self,
        settings: &Settings,
        name: &str,
        url: &str,
    ) -> Result<(Service, Duration)> {
        let place = new_copy(settings, name, url)?;
        let node = Service::start(&self.binary, &place, settings.cores)?;
        let took = node.first_answer(&self.first_path(), &self.key)?;
        Ok((node, took))
    }

    /// Creates a new file with `rows` objects.
    pub fn new(settings: &Settings, name: &str, resource: Resource, rows: u64) -> Result<Self> {
        let folder = settings.folder.join(name);
        remove(&folder)?;
        Self::open(settings, file_in(&folder), (resource, rows), &binary())
    }

    /// Opens the large file, which is kept between runs because filling it takes minutes.
    pub fn many(settings: &Settings, resource: Resource) -> Result<Self> {
        let folder = settings.large_file(resource);
        let place = file_in(&folder);
        Self::open(settings, place, (resource, settings.many), &binary()).map_err(|error| {
            format!("{error}\n(if the file is from an older build, recreate it with `--reseed`)")
                .into()
        })
    }

    fn open(
        settings: &Settings,
        place: Place,
        (resource, rows): (Resource, u64),
        binary: &Path,
    ) -> Result<Self> {
        if let Some(folder) = place.file().parent() {
            fs::create_dir_all(folder).context("the data folder")?;
        }
        let service = Service::start(binary, &place, settings.cores)?;
        let key = service.first_key()?;
        let projects = service.client()?.get_json("/api/projects/", &key)?;
        let project =
            projects["results"][0]["id"].as_u64().ok_or("no project in /api/projects/")?;
        let (binary, ids) = (binary.to_owned(), Vec::new());
        let mut site = Self { service, key, count: 0, resource, binary, place, project, ids };
        site.seed(rows)?;
        site.ids = site.pick_ids()?;
        Ok(site)
    }

    fn seed(&mut self, rows: u64) -> Result<()> {
        const STEP: u64 = 50_000;
        let begin = Instant::now();
        let creates = self.creates();
        self.count = self.read_count()?;
        while self.count < rows && begin.elapsed() < SEEDING_WITHIN {
            if rows > STEP {
                progress(&format!("seeding: {} of {rows} {}", self.count, self.resource.name()));
            }
            let group = Group::closed(CONNECTIONS, &creates).expecting(201);
            self.run(
                &[group],
                Span::exactly((rows - self.count).min(STEP), Duration::from_secs(60)),
            )?;
            self.count = self.read_count()?;
        }
        Ok(())
    }

    fn read_count(&self) -> Result<u64> {
        let page = self.service.client()?.get_json(&self.list_path(1, 0), &self.key)?;
        page["count"].as_u64().ok_or_else(|| "a list without a count".into())
    }

    /// Returns ids from the whole file: all ids of a small file. For a large file, random ids between the lowest and
    /// the highest seen, because ids are sequential. If a probe finds a missing id, only the ids seen.
    fn pick_ids(&self) -> Result<Vec<u64>> {
        let mut client = self.service.client()?;
        let mut seen = Vec::new();
        let pages = (self.count / 1_000).clamp(1, 20);
        for page in 0..pages {
            let path = self.list_path(1_000, self.count / pages * page);
            let list = client.get_json(&path, &self.key)?;
            seen.extend(
                list["results"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|item| item["id"].as_u64()),
            );
        }
        let (Some(low), Some(high)) = (seen.iter().min().copied(), seen.iter().max().copied())
        else {
            return fail(format!("the project lists no {}", self.resource.name()));
        };
        let mut dice = StdRng::seed_from_u64(self.count);
        if self.count > seen.len() as u64 {
            let any: Vec<u64> = (0..IDS).map(|_| dice.random_range(low..=high)).collect();
            let mut exists = true;
            for id in any.iter().take(64) {
                exists &= client.send(&render("GET", &self.one_path(*id), &self.key, ""))?.0 == 200;
            }
            if exists {
                return Ok(any);
            }
        }
        seen.shuffle(&mut dice);
        Ok(seen)
    }

    /// Runs groups against this site.
    pub fn run(&self, groups: &[Group<'_>], span: Span) -> Result<Run> {
        run(self.service.address, self.service.pid(), groups, span)
    }

    /// Stops the service cleanly and starts it again on the same file.
    pub fn restarted(self, settings: &Settings) -> Result<Self> {
        self.service.stop()?;
        let service = Service::start(&self.binary, &self.place, settings.cores)?;
        Ok(Self { service, ..self })
    }

    /// Kills the service and starts it again on the same file.
    pub fn crashed(self, settings: &Settings) -> Result<Self> {
        self.service.kill()?;
        let service = Service::start(&self.binary, &self.place, settings.cores)?;
        Ok(Self { service, ..self })
    }

    /// Returns the memory of the service.
    pub fn memory(&self) -> Result<Memory> {
        Memory::of(self.service.pid())
    }

    /// Returns the time from the start of the service to the first 200 with the key.
    pub fn first_answer(&self) -> Result<Duration> {
        self.service.first_answer(&self.one_path(self.ids[0]), &self.key)
    }

    /// Returns the response bodies for the ceiling: one object, and a list of 100.
    pub fn bodies(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut client = self.service.client()?;
        let one = client.get(&self.one_path(self.ids[0]), &self.key)?;
        Ok((one, client.get(&self.list_path(100, 0), &self.key)?))
    }

    fn path(&self) -> String {
        format!("/api/projects/{}/{}/", self.project, self.resource.name())
    }

    fn one_path(&self, id: u64) -> String {
        format!("{}{id}/", self.path())
    }

    /// Returns the path of the first object.
    pub fn first_path(&self) -> String {
        self.one_path(self.ids[0])
    }

    fn list_path(&self, limit: u64, offset: u64) -> String {
        format!("{}?limit={limit}&offset={offset}", self.path())
    }

    /// Returns a GET of one object with this key.
    pub fn get_with(&self, key: &str) -> Vec<u8> {
        render("GET", &self.one_path(self.ids[0]), key, "")
    }

    /// Returns GETs of single objects across the file.
    pub fn gets(&self) -> Vec<Vec<u8>> {
        self.ids.iter().map(|id| render("GET", &self.one_path(*id), &self.key, "")).collect()
    }

    /// Returns a list request of 100 objects at this offset.
    pub fn list(&self, offset: u64) -> Vec<Vec<u8>> {
        vec![render("GET", &self.list_path(100, offset), &self.key, "")]
    }

    /// Returns the path of the console's list of dashboards.
    pub fn console_list(&self) -> String {
        format!("/console/projects/{}/dashboards/", self.project)
    }

    /// Returns creates with bodies of about 200 bytes and names in random order.
    pub fn creates(&self) -> Vec<Vec<u8>> {
        let (path, mut dice) = (self.path(), StdRng::seed_from_u64(7));
        let body = match self.resource {
            Resource::Dashboards => sample::dashboard,
            Resource::Insights => sample::insight,
        };
        let mut body = || body(dice.random_range(0..100_000)).to_string();
        (0..VARIETY).map(|_| render("POST", &path, &self.key, &body())).collect()
    }

    /// Returns two edits for each of many objects across the file. They differ, because an edit without a change
    /// would not be written.
    pub fn patches(&self) -> Vec<Vec<u8>> {
        let turn = |words: &'static str| {
            let body =
                json!({ "description": format!("{words}: revenue against plan, by channel") });
            let ids = self.ids.iter().take(VARIETY);
            ids.map(move |id| render("PATCH", &self.one_path(*id), &self.key, &body.to_string()))
        };
        turn("Edited on Monday").chain(turn("Edited again on Friday")).collect()
    }
}

/// Returns the place of the data file in `folder`.
fn file_in(folder: &Path) -> Place {
    Place::File(folder.join("steward.redb"))
}

/// Returns the place of a node without a copy. Its folder is created.
fn new_copy(settings: &Settings, name: &str, url: &str) -> Result<Place> {
    let folder = settings.folder.join(name);
    remove(&folder)?;
    fs::create_dir_all(&folder).context("the folder of the copy")?;
    Ok(Place::Shared { url: url.to_owned(), copy: folder.join("copy.redb") })
}

/// Deletes a folder if it exists.
pub fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context(folder.display())
        }
        _ => Ok(()),
    }
}
