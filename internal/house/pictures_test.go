package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// maxPictures bounds what the pictures of the page weigh, in bytes: everybody
// who clones the repository carries them.
const maxPictures = 3 << 20

// TestPicturesOfThePage holds docs/page/README.md to the pictures beside it:
// each is shown, none is missing, and together they are light.
func TestPicturesOfThePage(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "docs", "page")
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, found := range regexp.MustCompile(`src="([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		shown = append(shown, found[1])
	}
	slices.Sort(shown)
	files, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	size := int64(0)
	for _, file := range files {
		there = append(there, filepath.Base(file))
		if info, err := os.Stat(file); err == nil {
			size += info.Size()
		}
	}
	if !slices.Equal(shown, there) {
		t.Errorf("README.md shows %v, and there are %v", shown, there)
	}
	if size > maxPictures || len(there) == 0 {
		t.Errorf("%d pictures have %d bytes, want at most %d", len(there), size, maxPictures)
	}
}
