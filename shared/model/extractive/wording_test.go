package extractive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

// TestHowAReportPutsIt: two reports move phrases, turn a verb into the passive and name a source in their own ways. What only looks like that
// is told apart.
func TestHowAReportPutsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		elder, newer string
		want         model.Relation
	}{
		{"Divers from 6 clubs searched the lake near Orvik.", "Near Orvik, the lake was searched by divers from 6 clubs.", model.Duplicate},
		{"Das Amt prüfte im Mai 2021 alle 32 Pfeiler der Brücke.", "Alle 32 Pfeiler der Brücke wurden im Mai 2021 vom Amt geprüft.", model.Duplicate},
		{"Das Werk Nord belieferte 2021 das Werk Süd.", "Das Werk Nord wurde 2021 vom Werk Süd beliefert.", model.Distinct},
		{"L'entreprise Vaudet a construit le viaduc entre 1998 et 2003.", "Le viaduc a été construit par l'entreprise Vaudet entre 1998 et 2003.", model.Duplicate},
		{"La torre de Almizque tiene una altura de 92 metros.", "La torre de Almizque mide 92 metros de altura.", model.Duplicate},
		{"The summit on fishing was held on 3 March 2024.", "On March 3, 2024, the summit on fishing took place.", model.Duplicate},

		{"Laut Behörde kostet der Neubau 84 Millionen Euro.", "Der Behörde zufolge kostet der Neubau 112 Millionen Euro.", model.Contradiction},
		{"Der Neubau kostet nach Angaben der Behörde 84 Millionen Euro.", "Der Neubau kostet laut Behörde 112 Millionen Euro.", model.Contradiction},
		{"The hives were lost to mites, according to a study of 400 hives.", "The hives were lost to mites, according to a study of 600 hives.", model.Distinct},
		{"In the second round, Ida Lind won 53.4 percent of the vote.", "Ida Lind took 51.8 percent of the vote in the second round.", model.Contradiction},
		{"The court annulled the sale of the harbour.", "The court upheld the sale of the harbour.", model.Contradiction},
		{"Women in Belmora have been able to vote since 1919.", "Women in Belmora have been able to vote since 1931.", model.Contradiction},
		{"Frauen dürfen in Belmora seit 1919 wählen.", "Frauen dürfen in Belmora seit 1931 wählen.", model.Contradiction},
		{"The mine has killed 12 miners since 1990.", "The mine has killed 12 miners since 2005.", model.Distinct},
		{"Parties need at least 5 percent of the vote to enter the council.", "To enter the council, parties need at least 3 percent of the vote.", model.Contradiction},
		{"At least 5 percent of the votes in the council were void.", "At least 3 percent of the votes in the council were void.", model.Distinct},
		{"The yield of the 16-nanometre process reached 70 percent in March.", "The yield of the 7-nanometre process reached 52 percent in March.", model.Distinct},
		{"The telescope has a 4-metre mirror.", "The telescope has a 6-metre mirror.", model.Contradiction},
		{"The act does not apply to forests.", "The act does not apply to forests, and vineyards are exempt as well.", model.Distinct},
		{"La región de Almizque tiene 270.000 hectáreas de olivar.", "El olivar ocupa 270.000 hectáreas en la región de Almizque.", model.Distinct},
		{"Der Einbau einer Luftwärmepumpe kostet im Mittel 27.000 Euro.", "Im Mittel kostet der Einbau einer Luftwärmepumpe 27.000 Euro.", model.Duplicate},
		{"Bis 2030 steigt die Spitzenlast durch Wärmepumpen um 14 Gigawatt.", "Die Spitzenlast durch Wärmepumpen steigt bis 2030 um 14 GW.", model.Duplicate},
		{"Existing ditches may be maintained until 2035.", "Until 2032, existing ditches may be maintained.", model.Contradiction},
		{"La ley del olivar prohíbe los pozos nuevos a partir de 2026.", "A partir de 2028, la ley del olivar prohíbe los pozos nuevos.", model.Contradiction},
		{"La cosecha de 2023 cayó un 48 por ciento por la sequía.", "Por la sequía, la cosecha de 2023 se redujo un 48 %.", model.Duplicate},
		{"6 700 chiens de protection sont employés par les éleveurs.", "Les éleveurs emploient 6 700 chiens de protection.", model.Duplicate},
		{"Der Staat übernimmt 30 Prozent der Kosten als Grundförderung.", "30 Prozent der Kosten werden vom Staat als Grundförderung übernommen.", model.Duplicate},
		{"Die Bank Nord übernahm 2021 die Bank Süd.", "Die Bank Nord wurde 2021 von der Bank Süd übernommen.", model.Distinct},
		{"La bacteria Xylella fue detectada en Almizque en octubre de 2021.", "En octubre de 2021 se detectó la bacteria Xylella en Almizque.", model.Duplicate},
		{"The switch closes in 4 picoseconds.", "The switch closes in 4 nanoseconds.", model.Contradiction},
	} {
		for _, order := range [][2]string{{c.elder, c.newer}, {c.newer, c.elder}} {
			got, why := judge(order[0], order[1])
			require.Equal(t, c.want, got, "%s\n%s\n%s", order[0], order[1], why)
		}
	}
}
