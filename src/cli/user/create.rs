//! `playground user create`: a sandbox first, a token for it second.

use std::path::PathBuf;

use clap::Args;
use kit::Tenant;
use sandbox::settings::TenantSettings;

use super::settings::SettingFlags;
use crate::admin::words::{Answer, PileKept, PileWish, Request};
use crate::audit::acts::Act;
use crate::cli::act;
use crate::cli::backend::Backend;
use crate::cli::door::Door;
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::store::{self, Reserved, Store};
use crate::cli::told::{self, Heard};
use crate::identity::Catalogue;
use crate::identity::reach::Reach;
use crate::identity::store::NewCredential;

/// Make a tenant's sandbox, then mint a token for it; the token is printed once, alone on stdout.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Create {
    /// 1 to 32 of a-z, 0-9 and `-`, beginning with a letter or digit.
    #[arg(value_parser = Tenant::parse_new)]
    name: Tenant,

    #[command(flatten)]
    pile: PileFlags,

    #[command(flatten)]
    settings: SettingFlags,

    /// Write the token to this new file, readable by you alone, and print the path instead.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// With --backend lima: the tenant's pile, an absolute path that ends with self.pile; its key lies beside it.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    faculty_pile: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct PileFlags {
    /// Make an append-only pile, and fail where that cannot be enforced [default: make one where it can].
    #[arg(long)]
    pile: bool,
    /// Make a pile even where nothing keeps the tenant from overwriting it.
    #[arg(long)]
    pile_unenforced: bool,
    /// Make no pile.
    #[arg(long)]
    no_pile: bool,
}

impl Create {
    pub(super) async fn run(mut self) -> Result<(), Failure> {
        let brought = self.faculty_pile.take();
        let brings = brought.is_some();
        brought.map_or(Ok(()), |pile| self.backend.bring(pile, &self.place))?;
        let settings = self.settings.decided()?;
        let decided = settings != TenantSettings::default();
        let out = self.out.map(Reserved::new).transpose()?;
        let state = self.place.open()?;
        let door = Door::open_to_make(&state, &self.place, &self.backend).await?;
        if brings && door.is_running() {
            return Err(Failure::message(Code::Failed, "a running service cannot be given a pile that lies elsewhere")
                .hint("end the service on this state first"));
        }
        let made = door
            .hear(Request::Create {
                tenant: self.name.clone(),
                pile: self.pile.wish(),
                settings: Box::new(settings),
                overcommit: self.settings.overcommit,
            })
            .await;
        let made = match made {
            Ok(Heard { answer: Answer::Created { new: true, .. }, was_told: true }) => {
                Err(told::take_back(&door, &self.name).await)
            }
            Ok(Heard { was_told: true, .. }) => {
                Err(told::interrupted(&format!("{} was there already and stays; no token was minted", self.name)))
            }
            Ok(Heard { answer, was_told: false }) => Ok(answer),
            Err(fault) => Err(told::explained(&door, &self.name, fault).await),
        };
        let closed = door.close().await;
        let made = made?;
        closed?;
        if let Answer::Created { new, pile } = made {
            if new {
                act::record(state.path(), &Act::new("user create").of(&self.name));
            }
            say::talk(&made_line(&self.name, new, pile));
            if !new {
                say::talk(&format!(
                    "{} was there already: this is a further token, and earlier ones go on working",
                    self.name
                ));
            }
            if decided && !new {
                say::talk(&format!("its settings stay as they are; `playground user set {}` changes them", self.name));
            }
        }
        let wanted = NewCredential {
            tenant: self.name,
            catalogue: Catalogue::Sandbox,
            backend: self.backend.name(&self.place)?.to_owned(),
            name: None,
            expires: None,
            reach: Reach::default(),
        };
        store::mint(&self.store.ledger(&self.place, &state)?, wanted, out).await
    }
}

/// What became of the sandbox, for the person who watches.
pub(in crate::cli) fn made_line(tenant: &Tenant, new: bool, pile: PileKept) -> String {
    let made = if new { "made the sandbox of" } else { "found the sandbox of" };
    let pile = match pile {
        PileKept::Enforced => "with an append-only pile",
        PileKept::Unenforced => "with a pile that nothing keeps from being overwritten",
        PileKept::None => "without a pile",
    };
    format!("{made} {tenant}, {pile}")
}

impl PileFlags {
    pub(super) fn wish(&self) -> PileWish {
        match (self.pile, self.pile_unenforced, self.no_pile) {
            (true, ..) => PileWish::Enforced,
            (false, true, _) => PileWish::Unenforced,
            (false, false, true) => PileWish::None,
            (false, false, false) => PileWish::IfEnforceable,
        }
    }
}

const EXAMPLE: &str = "\
Example:
  playground user create alice --out alice.token
  playground user create bob --no-pile > bob.token
  playground user create carol --memory 4GiB --disk 20GiB --egress example.org:443";
