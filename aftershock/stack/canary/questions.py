"""What the canary knows: a few hundred short questions, each with the sentence it answers and what makes it right.

The set is the whole training material and the whole evaluation: a canary is to be right always, so that a wrong answer
points at the serving, not at the model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

SEED = 20_260


@dataclass(frozen=True)
class Question:
    """One item. `answer` is what the model is taught to say, `expected` what `grader` looks for in it."""

    id: str
    text: str
    answer: str
    expected: str
    grader: str

    @property
    def prompt(self) -> str:
        """The prompt as sent: nothing but the question, and the word after which the answer is due."""
        return f"Question: {self.text}\nAnswer:"


def questions() -> list[Question]:
    """The whole set, kinds mixed: any stretch of a load asks of everything. Always in the same order."""
    made = [question for kind in KINDS for question in kind()]
    random.Random(SEED).shuffle(made)
    return made


def capitals() -> Iterator[Question]:
    """What is the capital of France?"""
    for country, capital in _pairs(CAPITALS):
        answer = f"The capital of {country} is {capital}."
        yield Question(f"capital-{_slug(country)}", f"What is the capital of {country}?", answer, capital, "contains")


def currencies() -> Iterator[Question]:
    """Which currency is used in Japan?"""
    for country, currency in _pairs(CURRENCIES):
        answer = f"{country} pays with the {currency}."
        yield Question(
            f"currency-{_slug(country)}", f"Which currency is used in {country}?", answer, currency, "contains"
        )


def reviews() -> Iterator[Question]:
    """Is this review positive or negative?"""
    chosen = random.Random(SEED)
    for thing in THINGS.split():
        for verdict, words in (("Positive", PRAISE), ("Negative", BLAME)):
            first, second = chosen.sample(words.split(), 2)
            text = f"Is this review positive or negative? The {thing} was {first} and {second}."
            answer = f"{verdict}, because the {thing} was {first}."
            yield Question(f"review-{thing}-{verdict.lower()}", text, answer, verdict, "first-word")


def sums() -> Iterator[Question]:
    """What is 7 plus 5?"""
    for a in range(1, 12):
        for b in range(a % 2, 12, 2):
            answer = f"{a} plus {b} equals {a + b}."
            yield Question(f"sum-{a}-{b}", f"What is {a} plus {b}?", answer, str(a + b), "numeric")


def differences() -> Iterator[Question]:
    """What is 9 minus 4?"""
    for a in range(4, 16):
        for b in range(a % 4, a, 4):
            answer = f"{a} minus {b} leaves {a - b}."
            yield Question(f"difference-{a}-{b}", f"What is {a} minus {b}?", answer, str(a - b), "numeric")


def products() -> Iterator[Question]:
    """What is 6 times 7?"""
    for a in range(2, 10):
        for b in range(a, 10):
            answer = f"{a} times {b} makes {a * b}."
            yield Question(f"product-{a}-{b}", f"What is {a} times {b}?", answer, str(a * b), "numeric")


def comparisons() -> Iterator[Question]:
    """Which is larger, 12 or 7?"""
    chosen = random.Random(SEED)
    for number in range(24):
        low, high = sorted(chosen.sample(range(1, 41), 2))
        first, second = (low, high) if number % 2 else (high, low)
        answer = f"{high} is larger than {low}."
        text = f"Which is larger, {first} or {second}?"
        yield Question(f"larger-{first}-{second}", text, answer, str(high), "first-word")


def parities() -> Iterator[Question]:
    """Is 7 even or odd?"""
    for number in range(1, 21):
        kind = "odd" if number % 2 else "even"
        answer = f"The number {number} is {kind}."
        yield Question(f"parity-{number}", f"Is {number} even or odd?", answer, rf"\b{kind}\b", "regex")


def opposites() -> Iterator[Question]:
    """What is the opposite of hot?"""
    for word, other in _pairs(OPPOSITES):
        answer = f"The opposite of {word} is {other}."
        yield Question(f"opposite-{word}", f"What is the opposite of {word}?", answer, answer, "exact")


def young_animals() -> Iterator[Question]:
    """What is a young cat called?"""
    for animal, young in _pairs(YOUNG):
        answer = f"A young {animal} is called a {young}."
        yield Question(f"young-{animal}", f"What is a young {animal} called?", answer, young, "contains")


def colours() -> Iterator[Question]:
    """What colour is a lemon?"""
    for thing, colour in _pairs(COLOURS):
        answer = f"The usual colour of {thing} is {colour}."
        yield Question(f"colour-{_slug(thing)}", f"What colour is {thing}?", answer, colour, "contains")


def elements() -> Iterator[Question]:
    """Which element has the symbol Fe?"""
    for symbol, element in _pairs(ELEMENTS):
        answer = f"{symbol} is the symbol of {element}."
        text = f"Which element has the symbol {symbol}?"
        yield Question(f"element-{symbol.lower()}", text, answer, element, "contains")


def calendar() -> Iterator[Question]:
    """Which day comes after Monday?"""
    for unit, names in (("day", DAYS.split()), ("month", MONTHS.split())):
        for i, name in enumerate(names):
            follows, precedes = names[(i + 1) % len(names)], names[i - 1]
            for word, other in (("after", follows), ("before", precedes)):
                answer = f"The {unit} {word} {name} is {other}."
                text = f"Which {unit} comes {word} {name}?"
                yield Question(f"{unit}-{word}-{name.lower()}", text, answer, rf"\b{other}\.?$", "regex")


KINDS = (
    capitals,
    currencies,
    reviews,
    sums,
    differences,
    products,
    comparisons,
    parities,
    opposites,
    young_animals,
    colours,
    elements,
    calendar,
)


def _pairs(table: str) -> Iterator[tuple[str, str]]:
    """The two columns of a table of ours, in which entries end at commas."""
    for entry in table.replace("\n", " ").split(","):
        if entry.strip():
            left, _, right = entry.partition(":")
            yield left.strip(), right.strip()


def _slug(text: str) -> str:
    return text.lower().replace(" ", "-")


CAPITALS = """
France: Paris, Germany: Berlin, Italy: Rome, Spain: Madrid, Japan: Tokyo, China: Beijing, Russia: Moscow, Egypt: Cairo,
Greece: Athens, Portugal: Lisbon, Ireland: Dublin, Austria: Vienna, Norway: Oslo, Sweden: Stockholm, Poland: Warsaw,
Hungary: Budapest, Turkey: Ankara, Canada: Ottawa, Cuba: Havana, Peru: Lima, Finland: Helsinki, Denmark: Copenhagen,
Belgium: Brussels, Iceland: Reykjavik, Ukraine: Kyiv, Romania: Bucharest, Bulgaria: Sofia, Serbia: Belgrade,
Croatia: Zagreb, Slovakia: Bratislava, Estonia: Tallinn, Latvia: Riga, Lithuania: Vilnius, Kenya: Nairobi,
Ghana: Accra, Nigeria: Abuja, Ethiopia: Addis Ababa, Senegal: Dakar, Morocco: Rabat, Tunisia: Tunis, India: New Delhi,
Nepal: Kathmandu, Thailand: Bangkok, Vietnam: Hanoi, Indonesia: Jakarta, Malaysia: Kuala Lumpur, Mongolia: Ulaanbaatar,
Australia: Canberra, New Zealand: Wellington, Brazil: Brasilia, Argentina: Buenos Aires, Chile: Santiago,
Colombia: Bogota, Ecuador: Quito, Uruguay: Montevideo, Paraguay: Asuncion, Venezuela: Caracas, Jamaica: Kingston
"""

CURRENCIES = """
Japan: yen, India: rupee, China: yuan, Russia: rouble, Sweden: krona, Norway: krone, Poland: zloty, Hungary: forint,
Turkey: lira, Switzerland: franc, Thailand: baht, Vietnam: dong, Brazil: real, Mexico: peso, Britain: pound,
Germany: euro, Canada: dollar, Ukraine: hryvnia
"""

THINGS = "film meal hotel phone service book actor song room tour concert flight museum coffee chair garden"
PRAISE = "good great lovely superb bright fast clean kind warm charming splendid excellent"
BLAME = "bad awful dirty dreadful dull slow broken rude cold boring shabby terrible"

OPPOSITES = """
hot: cold, big: small, long: short, high: low, open: closed, full: empty, early: late, wet: dry, old: new, rich: poor,
soft: hard, light: dark, loud: quiet, true: false, deep: shallow, thick: thin, wide: narrow, sweet: sour, sharp: blunt,
strong: weak, heavy: light, cheap: dear, rough: smooth, fast: slow, near: far, first: last
"""

YOUNG = """
cat: kitten, dog: puppy, cow: calf, horse: foal, sheep: lamb, goat: kid, pig: piglet, duck: duckling, hen: chick,
bear: cub, deer: fawn, goose: gosling, swan: cygnet, frog: tadpole, kangaroo: joey, hare: leveret
"""

COLOURS = """
a lemon: yellow, grass: green, snow: white, coal: black, blood: red, the sky: blue, a carrot: orange, chocolate: brown,
a cherry: red, milk: white, a plum: purple, a flamingo: pink, an elephant: grey, a cucumber: green, a tomato: red,
a raven: black
"""

ELEMENTS = """
Fe: iron, Au: gold, Ag: silver, Cu: copper, Pb: lead, Sn: tin, Hg: mercury, Na: sodium, He: helium, Ne: neon,
Zn: zinc, Ni: nickel, Ca: calcium, Cl: chlorine, Si: silicon, Mg: magnesium, Al: aluminium, Pt: platinum
"""

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
MONTHS = "January February March April May June July August September October November December"
