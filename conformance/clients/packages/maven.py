"""Java: the adapter's classes, compiled with another version of the artifact."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

from conformance.clients.packages.cache import built, output_of
from conformance.clients.packages.package import Package
from fakebrokers.errors import UsageError

_SPACE = "http://maven.apache.org/POM/4.0.0"
_IN = f"{{{_SPACE}}}"
_MAVEN = ["mvn", "--quiet", "--batch-mode"]
#: A project whose dependency may have any version: to choose, Maven fetches the list of all.
_ANY = f"""<project xmlns="{_SPACE}"><modelVersion>4.0.0</modelVersion>
<groupId>fakebrokers</groupId><artifactId>any</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>[0,)</version>
<type>pom</type></dependency></dependencies></project>
"""


def listed(library: str) -> list[str]:
    """All versions in the repositories that Maven knows."""
    group, _, name = library.partition(":")
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "pom.xml").write_text(_ANY % (group, name))
        local = f"-Dmaven.repo.local={place}/repository"
        output_of(
            [*_MAVEN, "-U", "dependency:resolve", local],
            f"Maven knows no versions of {library}",
            folder=Path(place),
        )
        kept = Path(place) / "repository" / group.replace(".", "/") / name
        trees = [ElementTree.parse(path) for path in sorted(kept.glob("maven-metadata-*.xml"))]
    versions = [each.text or "" for tree in trees for each in tree.iter("version")]
    if not versions:
        raise UsageError(f"Maven knows no versions of {library}")
    return list(dict.fromkeys(versions))


def fetched(package: Package, version: str) -> Path:
    """The adapter with that version."""
    asked = f"{package.library}:{version}"

    def build(folder: Path) -> None:
        repin(folder / "pom.xml", package.library, version)
        output_of([*_MAVEN, "compile"], f"the adapter cannot be compiled with {asked}", folder=folder)

    return built(package.folder, version, build)


def repin(pom: Path, library: str, version: str) -> None:
    """Change the version of a dependency; what checks the lock file is left out, which is for another one."""
    ElementTree.register_namespace("", _SPACE)
    tree = ElementTree.parse(pom)
    for each in tree.iter(f"{_IN}dependency"):
        if f"{each.findtext(f'{_IN}groupId')}:{each.findtext(f'{_IN}artifactId')}" == library:
            found = each.find(f"{_IN}version")
            if found is not None:
                found.text = version
    for plugins in tree.iter(f"{_IN}plugins"):
        for each in list(plugins):
            if each.findtext(f"{_IN}artifactId") == "maven-lockfile":
                plugins.remove(each)
    tree.write(pom, encoding="utf-8", xml_declaration=True)
